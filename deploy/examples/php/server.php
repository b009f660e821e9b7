<?php
// A server for Waypost's gateways: tokens in the file WAYPOST_TOKENS, records in the SQLite file WAYPOST_DATABASE.
declare(strict_types=1);

const MAX = 16 << 20; // bytes of a body, before and after compression

final class Refused extends Exception {}

/** Returns the body; one that is too long is read to its end, so that the answer gets through. */
function body(): string
{
    $input = fopen('php://input', 'rb');
    $body = (string) stream_get_contents($input, MAX + 1);
    while (strlen($body) > MAX && !feof($input)) fread($input, 1 << 16);
    if (strlen($body) > MAX) throw new Refused('the body is longer than ' . MAX . ' bytes', 413);
    $length = (int) ($_SERVER['CONTENT_LENGTH'] ?? $_SERVER['REQUEST_METHOD'] === 'POST'); // none if chunked
    if (strlen($body) < $length) throw new Refused('the body ends early or has no length', 503);
    return $body;
}

function inflated(string $body, string $coding): string
{
    if ($coding === 'identity') return $body;
    if ($coding !== 'gzip') throw new Refused("$coding is not known", 415);
    [$stream, $text] = [inflate_init(ZLIB_ENCODING_GZIP), ''];
    foreach (str_split($body, 4096) as $piece) { // 4 kB become 4 MB at most
        $part = @inflate_add($stream, $piece);
        if ($part === false) throw new Refused('the gzip data is damaged', 400);
        $text .= $part;
        if (strlen($text) > MAX) throw new Refused('the body inflates to more than ' . MAX . ' bytes', 413);
    }
    if (inflate_get_status($stream) !== ZLIB_STREAM_END) throw new Refused('the gzip data ends early', 400);
    return $text;
}

/** Stores the records of a batch that are new; they are on the disk when it returns. */
function store(string $text): array
{
    $batch = json_decode($text);
    $records = is_object($batch) ? $batch->data ?? null : null;
    if (!is_array($records) || !is_string($batch->device_id ?? null) || !is_string($batch->stream_name ?? null)) {
        throw new Refused('not a batch: ' . json_last_error_msg(), 422);
    }
    $database = new PDO('sqlite:' . getenv('WAYPOST_DATABASE'));
    $database->exec('PRAGMA busy_timeout = 30000');
    $database->exec('CREATE TABLE IF NOT EXISTS records(device, id, stream, record, PRIMARY KEY(device, id))');
    $insert = $database->prepare('INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)');
    $database->exec('BEGIN IMMEDIATE'); // one transaction: all of a batch or nothing
    $new = 0;
    foreach ($records as $record) {
        if (!is_object($record) || !is_string($record->id ?? null)) throw new Refused('a record has no id', 422);
        $json = json_encode($record, JSON_PRESERVE_ZERO_FRACTION);
        if ($json === false) throw new Refused('a record cannot be stored: ' . json_last_error_msg(), 422);
        $insert->execute([$batch->device_id, $record->id, $batch->stream_name, $json]);
        $new += $insert->rowCount();
    }
    $database->exec('COMMIT');
    return ['accepted' => $new, 'duplicates' => count($records) - $new, 'rejected' => 0];
}

function answer(string $path, string $body): array
{
    $tokens = preg_split('/\s+/', (string) file_get_contents((string) getenv('WAYPOST_TOKENS')), -1, PREG_SPLIT_NO_EMPTY);
    $token = $_SERVER['HTTP_X_DEVICE_TOKEN'] ?? '';
    if (!in_array($token, $tokens, true)) throw new Refused('the token is not known', 401);
    if ($path === '/api/device/verify') return ['ok' => true, 'max_body' => MAX];
    if ($path !== '/api/ingest' || $_SERVER['REQUEST_METHOD'] !== 'POST') throw new Refused('nothing is here', 404);
    return store(inflated($body, $_SERVER['HTTP_CONTENT_ENCODING'] ?? 'identity'));
}

[$status, $result] = [200, []];
try {
    $result = answer(explode('?', $_SERVER['REQUEST_URI'])[0], body());
} catch (Throwable $error) {
    [$status, $result] = [$error instanceof Refused ? $error->getCode() : 500, ['error' => $error->getMessage()]];
}
http_response_code($status);
header('Content-Type: application/json');
header('Accept-Encoding: gzip');
echo json_encode($result, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
