"""The images on which detection is judged, the peers beside it, and what is measured.

`optics`, `scmos` and `nuclei` are a renderer that shares no code with `outbid.simulate`; `cells` is the grid
and its images, `separated` single spots and images without any. `agree` says which detections are right;
`tuned` are other detectors, tuned on the truth. `grid`, `false_spots`, `precision`, `real` and `speed`
measure one thing each; `run` measures all and writes the record. `movies` are those of `whole_way.py`.

`few` has movies of few bright beads, with halos, out of focus, saturated.

`uneven` has kinds of images in uneven light, drawn by `gaussian_light` and `diffraction` from a
`scene_of_light`, beside an oracle.

The peers' scores are frozen in tests/bench/detection_peers.json, because they do not depend on this project.
"""
