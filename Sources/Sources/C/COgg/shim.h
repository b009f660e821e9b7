// libogg: packets into pages.
#pragma once
#include <ogg/ogg.h>
