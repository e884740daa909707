"""The parts of the hub, which `hub.py` lists and puts together."""
