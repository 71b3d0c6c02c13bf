"""Tables in which Outbid stands beside its peers: the front page's, and the whole way from images."""

from __future__ import annotations

from tables import mean, origin, record, short, table

_CROWDED = 0.5
"""Step times gate, in units of the spacing, above which each particle has several candidates."""
WHOLE_WAY = {
    "link_f1": "link F1",
    "idf1": "IDF1",
    "jsc_theta": "JSC of tracks",
    "seconds": "seconds of a core",
}
"""What is measured of the whole way from images to tracks."""
DIGITS = {"seconds": 1}
"""After the point, where it is not 3."""


def front_page() -> str:
    """Link F1 on real movies beside tuned peers, and the time of a frame pair on the CPU and on a GPU."""
    seen = record("gpu")
    row = max(seen["frame_pairs"], key=lambda pair: (pair["particles"], pair["candidates"]))
    return (
        f"{from_images()}\n\n{rivals()}\n\nOn a GPU ({seen['card']}), {row['particles']:,} particles with "
        f"{row['candidates']} candidates each are linked to the next frame in {row['gpu_ms']:g} ms, "
        f"optimality gap {row['gap']:g} (`make gpu-test`, commit {short(seen['commit'])}, {seen['date']})."
    )


def whole_way() -> str:
    """Each kind of movie from images to tracks: with nothing set, and by tuned peers."""
    seen = record("whole_way")
    who = ("outbid", *seen["peers"])
    heads = (f"{text}: {', '.join(who)}" for text in WHOLE_WAY.values())
    lines = (
        (row["movie"], *(" / ".join(f"{row[one][key]:.2f}" for one in who) for key in WHOLE_WAY))
        for row in seen["rows"]
    )
    return f"{table(('movie', *heads), lines)}\n\n`{seen['command']}`, {origin(seen)}."


def from_images() -> str:
    """Means over the kinds of movies from images to tracks, and where they come from."""
    seen = record("whole_way")
    names = {"outbid": "Outbid, nothing set"} | {
        name: f"Laplacian of Gaussian and {name} {version}, tuned on the truth"
        for name, version in seen["peers"].items()
    }
    rows, head = seen["rows"], f"from images to tracks, mean of {len(seen['rows'])} movies"
    lines = [
        (text, *(mean([row[one] for row in rows], key, f".{DIGITS.get(key, 3)}f") for one in names))
        for key, text in WHOLE_WAY.items()
    ]
    return (
        f"{table((head, *names.values()), lines)}\n\n"
        "Twelve kinds of simulated movies, planes and volumes. Settings of the others are those that score "
        "best on the very movie; their seconds are of that one run. "
        f"`{seen['command']}`, commit {short(seen['commit'])}, {seen['date']}."
    )


def rivals() -> str:
    """Link F1 on recorded movies beside peers tuned on sibling movies, and the time of frame pairs."""
    seen, rows = record("peers"), dict[str, dict[str, str]]()
    for row in seen["accuracy"]:
        kept = f", every {row['every']} frames" if row["every"] > 1 else ""
        rows.setdefault(f"{row['what']}{kept}", {})[row["linker"]] = f"{row['link_f1']:.3f}"
    for row in seen["speed"]:
        dense = "crowded" if row["kappa"] * row["gate"] > _CROWDED else "sparse"
        name = f"linking two frames of {row['particles']:,} particles, {dense}: time on one core"
        taken = f"{row['cpu_s']:.3g} s" if "cpu_s" in row else "not in 120 s"
        rows.setdefault(name, {})[row["linker"]] = taken
    peers = [f"{name} {version}, tuned" for name, version in seen["peers"].items()]
    lines = (
        [name, *(cells.get(one, "") for one in ("outbid", *seen["peers"]))] for name, cells in rows.items()
    )
    return (
        f"{table(('link F1 on real movies', 'Outbid, nothing set', *peers), lines)}\n\n"
        "Link F1 is 1 if all links are right. Crowded: the standard deviation of a step along an axis is "
        "half of the distance between particles; sparse: a fifth. For each movie, the settings of laptrack "
        "and trackpy are those with the best link F1 on a similar movie with known truth. "
        f"`{seen['command']}`, commit {short(seen['commit'])}, {seen['date']}; "
        f"{seen['machine']}."
    )
