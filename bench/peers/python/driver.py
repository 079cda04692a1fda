"""Runs one measure of procrastinate: `python driver.py ACTION URL OPTIONS`, OPTIONS being JSON. bench/peers/run calls it."""

import asyncio
import json
import sys

# The app lives in a module of its own: procrastinate warns of apps in the main module.
from measures import Driver

action, url, *rest = sys.argv[1:]
asyncio.run(getattr(Driver(action, url, json.loads(rest[0] if rest else "{}")), action)())
