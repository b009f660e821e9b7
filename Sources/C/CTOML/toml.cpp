#include "waypost_toml.h"
