// libzstd.
#pragma once
#include <zstd.h>
