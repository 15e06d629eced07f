"""The paper's experiments and the command `tacit`. The library never imports this room.

    common/       configuration, training loop, checkpoints, several processes, logs, metrics, jobs, reports
    pointcloud/   robust pooling in PointNet: tables of accuracy against outliers
    image/        ResNet-18 with projected features: table of precision and calibration

Training and evaluation need torch and numpy; everything else is imported where it is used and missed politely.
"""
