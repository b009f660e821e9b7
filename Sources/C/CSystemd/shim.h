// libsystemd: D-Bus (sd-bus).
#pragma once
#include <systemd/sd-bus.h>
