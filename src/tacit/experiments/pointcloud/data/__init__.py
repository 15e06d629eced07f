"""Where clouds come from: one file a form.

npz.py        one .npz, or a folder of train-*.npz and test-*.npz
hdf5.py       ModelNet40 as `modelnet40_ply_hdf5_2048`
folder.py     a folder a class of .off, .npy or .ply files
meshes.py     points sampled from a mesh by area
embedded.py   shapes made here, nothing to fetch
clouds.py     what all of them give: `Clouds`
cache.py      what was slow to read is read once
"""
