#include "waypost_aac.h"

#include <limits.h>
#include <vo-aacenc/cmnMemory.h>
#include <vo-aacenc/voAAC.h>

// The encoder keeps a pointer to this.
static VO_MEM_OPERATOR memory = {
    .Alloc = cmnMemAlloc, .Free = cmnMemFree, .Set = cmnMemSet, .Copy = cmnMemCopy, .Check = cmnMemCheck};

static VO_AUDIO_CODECAPI functions(void) {
    VO_AUDIO_CODECAPI api;
    voGetAACEncAPI(&api);
    return api;
}

waypost_aac *waypost_aac_open(int rate, int bitrate, uint32_t *code) {
    VO_CODEC_INIT_USERDATA user = {.memflag = VO_IMF_USERMEMOPERATOR, .memData = &memory};
    AACENC_PARAM parameters = {.sampleRate = rate, .bitRate = bitrate, .nChannels = 1, .adtsUsed = 1};
    VO_AUDIO_CODECAPI api = functions();
    VO_HANDLE encoder = NULL;
    *code = (uint32_t)api.Init(&encoder, VO_AUDIO_CodingAAC, &user);
    if (*code != VO_ERR_NONE) return NULL;
    *code = (uint32_t)api.SetParam(encoder, VO_PID_AAC_ENCPARAM, &parameters);
    if (*code == VO_ERR_NONE) return encoder;
    api.Uninit(encoder);
    return NULL;
}

uint32_t waypost_aac_encode(
    waypost_aac *encoder, const int16_t *samples, uint8_t *frame, size_t room, size_t *length) {
    VO_AUDIO_CODECAPI api = functions();
    VO_CODECBUFFER in = {.Buffer = (VO_PBYTE)samples, .Length = 2048};
    VO_CODECBUFFER out = {.Buffer = frame, .Length = room};
    VO_AUDIO_OUTPUTINFO info;
    *length = 0;
    uint32_t code = (uint32_t)api.SetInputData(encoder, &in);
    if (code != VO_ERR_NONE) return code;
    code = (uint32_t)api.GetOutputData(encoder, &out, &info);
    if (code == VO_ERR_NONE) *length = out.Length;
    return code;
}

void waypost_aac_close(waypost_aac *encoder) { functions().Uninit(encoder); }

// 2^(x/y) in Q31, inside the library. libvo-aacenc 0.1.3 also calls it with x > 0, indexes its
// table with a negative number and crashes on ordinary audio. The linker replaces it with this one
// (--wrap in Package.swift), which needs the library as an archive; 1 is the most that Q31 can
// hold.
int __real_voAACEnc_pow2_xy(int x, int y);
int __wrap_voAACEnc_pow2_xy(int x, int y);

int __wrap_voAACEnc_pow2_xy(int x, int y) { return x > 0 ? INT_MAX : __real_voAACEnc_pow2_xy(x, y); }
