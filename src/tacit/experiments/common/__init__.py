"""What the experiments share; it knows no experiment.

files.py        files that are whole or not there: `write_bytes`, `write_json`, `read_json`; `alone_in(folder)`
arrays.py       `read_npz`: NumPy's archives, whole or refused
config.py       a frozen dataclass from TOML or YAML and the command line: `option`, `build`, `add_arguments`
checkpoint.py   `Checkpoints(folder)`: `save(state)`, `load()`; a damaged file is never loaded
distributed.py  `World`: one process or several under `torchrun`
loop.py         `Task` and `fit(task, folder, ...)`: epochs, resume, Ctrl-C
metrics.py      `top_k`, `average_precision`, `mean_average_precision`
logs.py         `Log`: one row an epoch, in CSV and (where installed) TensorBoard
progress.py     `Progress`: a bar in a terminal, plain lines elsewhere
jobs.py         `Job` and `run_jobs`: a table is a list of runs, each in its folder, claimed by a lock file
report.py       `provenance`, `markdown`, `write_table`
figures.py      `pyplot()`: matplotlib, or how to install it
seeds.py        `seed_of`, `generator`: random numbers that depend on where one is, not on what came before
"""
