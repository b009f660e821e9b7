// libspeexdsp: its resampler.
#pragma once
#include <speex/speex_resampler.h>
