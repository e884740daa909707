"""What all tests share: property tests judge answers, never the speed of the machine they run on."""

from hypothesis import HealthCheck, settings

settings.register_profile("reviewsd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reviewsd")
