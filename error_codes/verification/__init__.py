"""E3, verification and recovery: bad output that was there to see, and nobody looked, checked or repaired."""
