"""Delivered files held against what a track demands: S4, S5 and the caps that follow from them."""
