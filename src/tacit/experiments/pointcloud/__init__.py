"""Point clouds: PointNet whose pooling over points is max or a robust average, under outliers (the paper's section 7).

config.py      what a training is; the defaults are the paper's protocol
data/          ModelNet40 in its usual forms, a folder of your own, or shapes made here
outliers.py    a share of the points replaced by uniform samples of the unit ball
batches.py     batches drawn on the device: points, augmentation, outliers
model.py       PointNet without transforms, 0.8 M parameters
train.py       one training, then its test
evaluate.py    accuracy and mean average precision under outliers
table.py       the paper's tables, as many trainings
plots.py       curves, a gallery, what each pooling attends to
command.py     `tacit pointcloud train | evaluate | table | plot`
"""
