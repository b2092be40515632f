"""One file for each kind of channel; `sending.CHANNELS` says which scheme is whose."""
