// The work of a quiet gateway in plain C with the same libraries: the floor for its memory and wake-ups.
//
//   cc -O2 -o plain plain.c -lasound -lcurl -lopus -lsqlite3
//   plain DATABASE URL PCM
//
// A second of sound is read, encoded by Opus and stored with a commit of its own, for ever; the server is asked once.
// It has one thread, waits in nothing but the device and the disk, and neither radio, positions, control nor errors.
#include <alsa/asoundlib.h>
#include <curl/curl.h>
#include <opus.h>
#include <sqlite3.h>

enum { RATE = 16000, PACKET = RATE / 50 };

static void must(int is_right, const char *what) {
    if (is_right) return;
    fprintf(stderr, "plain: %s failed\n", what);
    exit(1);
}

static sqlite3 *opened(const char *path) {
    sqlite3 *database;
    must(sqlite3_open(path, &database) == SQLITE_OK, path);
    // As the queue's, and a journal that has its length already: a commit then changes nothing but its blocks.
    const char *text =
        "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-512;"
        "PRAGMA wal_autocheckpoint=4000; CREATE TABLE sound(id INTEGER PRIMARY KEY, second BLOB);"
        "INSERT INTO sound SELECT NULL, randomblob(4194304); DELETE FROM sound;"
        "PRAGMA wal_checkpoint(RESTART); PRAGMA synchronous=FULL;";
    must(sqlite3_exec(database, text, 0, 0, 0) == SQLITE_OK, path);
    return database;
}

static snd_pcm_t *microphone(const char *name) {
    snd_pcm_t *pcm;
    snd_pcm_hw_params_t *hardware;
    snd_pcm_hw_params_alloca(&hardware);
    must(snd_pcm_open(&pcm, name, SND_PCM_STREAM_CAPTURE, 0) == 0, name);
    snd_pcm_uframes_t period = RATE;
    must(snd_pcm_hw_params_any(pcm, hardware) >= 0 &&
             snd_pcm_hw_params_set_access(pcm, hardware, SND_PCM_ACCESS_RW_INTERLEAVED) == 0 &&
             snd_pcm_hw_params_set_format(pcm, hardware, SND_PCM_FORMAT_S16_LE) == 0 &&
             snd_pcm_hw_params_set_channels(pcm, hardware, 1) == 0 &&
             snd_pcm_hw_params_set_rate(pcm, hardware, RATE, 0) == 0 &&
             snd_pcm_hw_params_set_period_size_near(pcm, hardware, &period, 0) == 0 &&
             snd_pcm_hw_params(pcm, hardware) == 0,
         "setting the microphone");
    return pcm;
}

static size_t ignored(char *bytes, size_t size, size_t count, void *user) {
    (void)bytes, (void)user;
    return size * count;
}

static void ask(const char *url) {
    must(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl");
    CURL *request = curl_easy_init();
    curl_easy_setopt(request, CURLOPT_URL, url);
    curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, ignored);
    must(curl_easy_perform(request) == CURLE_OK, url);
}

int main(int count, char **arguments) {
    must(count == 4, "plain DATABASE URL PCM");
    sqlite3 *database = opened(arguments[1]);
    snd_pcm_t *pcm = microphone(arguments[3]);
    int error;
    OpusEncoder *encoder = opus_encoder_create(RATE, 1, OPUS_APPLICATION_AUDIO, &error);
    must(encoder != NULL, "libopus");
    opus_encoder_ctl(encoder, OPUS_SET_BITRATE(24000));
    ask(arguments[2]);
    sqlite3_stmt *insert;
    must(sqlite3_prepare_v2(database, "INSERT INTO sound VALUES(NULL, ?)", -1, &insert, 0) == SQLITE_OK, "the table");
    static opus_int16 second[RATE];
    static unsigned char packets[RATE];
    for (;;) {
        must(snd_pcm_readi(pcm, second, RATE) == RATE, "reading sound");
        int length = 0;
        for (int at = 0; at < RATE; at += PACKET)
            length += opus_encode(encoder, second + at, PACKET, packets + length, sizeof packets - length);
        sqlite3_bind_blob(insert, 1, packets, length, SQLITE_STATIC);
        must(sqlite3_step(insert) == SQLITE_DONE && sqlite3_reset(insert) == SQLITE_OK, "a commit");
    }
}
