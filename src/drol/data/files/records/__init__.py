"""Recordings of messages and of whole episodes: bags of ROS 2 and MCAP, TFRecord files of RLDS."""
