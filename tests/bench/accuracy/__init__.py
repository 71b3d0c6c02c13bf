"""The movies on which learned linking is measured, and the programs that measure it.

`film` turns paths into detections and truth; `walkers`, `flows`, `views` and `tissues` hold the kinds of
motion, one function each from (seed, kappa) to the true tracks; `movies` is the list of all of them, of
which movies.toml says what is developed on and what is only reported on. `linkers` names what links, `run`
measures it over the list, `compare` sets two records beside each other.

No kind is made by the model of the tracker (a stationary AR(1) of steps) or by `outbid.simulate`.
"""
