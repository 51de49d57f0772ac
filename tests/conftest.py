"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# How long one example takes, or making it, says how busy the machine is; what must be quick measures its own time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
