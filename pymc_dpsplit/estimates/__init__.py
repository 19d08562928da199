"""Point estimates of the partition without sampling: MAP-DPM and DP-means."""
