// libgps: the connection to gpsd and gps_unpack, which turns one JSON line into gps_data_t.
#pragma once
#include <gps.h>
#include <gps_json.h>
