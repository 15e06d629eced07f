"""Section 7 of the paper, images: ResNet-18 with its features projected before the classifier (table 3)."""
