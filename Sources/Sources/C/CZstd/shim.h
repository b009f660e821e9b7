// zstd.
#pragma once
#include <zstd.h>
