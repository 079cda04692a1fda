import logging

# What is logged is asserted where it matters; the rest would only clutter the output.
logging.getLogger("tenure_client").addHandler(logging.NullHandler())
