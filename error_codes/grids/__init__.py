"""E3 and E5: pixel grids and coordinates followed from loading to saving through the code that made the outputs."""
