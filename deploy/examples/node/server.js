// A server for Waypost's gateways, of Node's standard library: node server.js TOKEN_FILE FOLDER [PORT]
'use strict';
const fs = require('node:fs'), http = require('node:http'), path = require('node:path'), zlib = require('node:zlib');

const [tokenFile, folder, port] = process.argv.slice(2), MAX = 16 << 20; // bytes of a body, before and after compression
const tokens = new Set(fs.readFileSync(tokenFile, 'utf8').split(/\s+/).filter(Boolean));
const known = new Set(); // of each record its device and id
const name = path.join(folder, 'records.ndjson'), file = fs.openSync(name, 'a+');

/** Reads the ids of the records that are stored, and cuts off a line that a power cut left unfinished. */
function recover() {
    const bytes = fs.readFileSync(name), end = bytes.lastIndexOf(10) + 1;
    fs.ftruncateSync(file, end);
    for (const line of bytes.subarray(0, end).toString().split('\n').filter(Boolean)) {
        const { device_id: device, record } = JSON.parse(line);
        known.add(JSON.stringify([device, record.id]));
    }
}

/** Returns an answer other than 200. */
const refused = (status, error) => Object.assign(new Error(error), { status });

/** Refuses a number that JSON.parse has turned into Infinity. */
function finite(key, value) {
    if (typeof value === 'number' && !Number.isFinite(value)) throw refused(422, `${key} is too large`);
    return value;
}

/** Stores the records of a batch that are new; they are on the disk when it returns. */
function store(batch) {
    const { device_id: device, stream_name: stream, data } = batch ?? {};
    const names = Array.isArray(data) ? [device, stream, ...data.map((record) => record?.id)] : [null];
    if (names.some((text) => typeof text !== 'string')) throw refused(422, 'not a batch: a name, an id or data is missing');
    const fresh = new Map();
    for (const record of data) {
        const key = JSON.stringify([device, record.id]);
        if (known.has(key) || fresh.has(key)) continue;
        fresh.set(key, JSON.stringify({ device_id: device, stream, record }, finite) + '\n');
    }
    const start = fs.fstatSync(file).size;
    try {
        fs.writeFileSync(file, [...fresh.values()].join(''));
        fs.fsyncSync(file);
    } catch (error) { // a full disk: nothing of the batch stays
        fs.ftruncateSync(file, start);
        throw refused(500, error.message);
    }
    for (const key of fresh.keys()) known.add(key);
    return { accepted: fresh.size, duplicates: data.length - fresh.size, rejected: 0 };
}

/** Returns the body without its compression. */
function inflated(body, coding = 'identity') {
    if (coding === 'identity') return body;
    if (coding !== 'gzip') throw refused(415, `${coding} is not known`);
    try { return zlib.gunzipSync(body, { maxOutputLength: MAX }); } catch (error) {
        throw refused(error.code === 'ERR_BUFFER_TOO_LARGE' ? 413 : 400, error.message);
    }
}

function answer(request, body) {
    if (!tokens.has(request.headers['x-device-token'])) throw refused(401, 'the token is not known');
    if (request.url === '/api/device/verify') return { ok: true, max_body: MAX };
    if (request.url !== '/api/ingest' || request.method !== 'POST') throw refused(404, 'nothing is here');
    if (body === null) throw refused(413, `the body is longer than ${MAX} bytes`);
    const text = inflated(body, request.headers['content-encoding']);
    try { return store(JSON.parse(text)); } catch (error) { throw error.status ? error : refused(422, error.message); }
}

recover();
http.createServer(async (request, response) => {
    let [status, result, pieces, length] = [200, {}, [], 0];
    try { // a body that is too long is read to its end, so that the answer gets through
        for await (const piece of request) if ((length += piece.length) > MAX) pieces = []; else pieces.push(piece);
        result = answer(request, length > MAX ? null : Buffer.concat(pieces));
    } catch (error) { [status, result] = [error.status ?? 500, { error: error.message }]; }
    response.writeHead(status, { 'Content-Type': 'application/json', 'Accept-Encoding': 'gzip' });
    response.end(JSON.stringify(result));
}).listen(Number(port ?? 8080), '127.0.0.1');
