/** Ways to use and to misuse a connection, as data: the bytes that a client sends, how it goes on, and what it is answered. */
import { BIN, BIN_PRICE, GRAMMAR, GRAMMAR_PRICE } from "./Server.ts"

export interface Way {
  /** Written one after another, each once the operating system has taken the one before. */
  readonly sent: ReadonlyArray<string>
  /** What the client does then: it waits for the answers, or says that it sends no more, or leaves, or breaks the connection. */
  readonly ending?: "wait" | "end" | "leave" | "reset"
  /** The statuses of all answers; undefined where the client does not stay for them. */
  readonly statuses?: ReadonlyArray<number>
  /** Credits that may have been charged for answers that nobody saw: none by default. */
  readonly unseen?: number
  /** Whether further answers may follow the ones that are listed. */
  readonly mayGoOn?: boolean
}

const MEGABYTE_AND_A_HALF = 1_500_000

/** The lines of a request's head. */
const head = (line: string, ...headers: ReadonlyArray<string>) => [line, ...headers, "", ""].join("\r\n")
/** A chunk of a chunked body. */
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const LAST = "0\r\n\r\n"
const HOST = "Host: millrace"
const TEXT = '{"text":"Oh"}'
const LONG = `{"text":"${"x".repeat(MEGABYTE_AND_A_HALF)}"}`
const noise = (length: number) => {
  // A linear congruential generator: the same bytes each time
  let seed = 7
  return Array.from({ length }, () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return String.fromCharCode(seed >>> 24)
  }).join("")
}

/** All ways, for a client whose API key is `key`. */
export const ways = (key: string): Readonly<Record<string, Way>> => {
  const auth = `Authorization: Bearer ${key}`
  const get = (...headers: ReadonlyArray<string>) => head(`GET ${BIN} HTTP/1.1`, HOST, auth, ...headers)
  const post = (...headers: ReadonlyArray<string>) => head(`POST ${GRAMMAR} HTTP/1.1`, HOST, auth, ...headers)
  const whole = (text = TEXT) => `${post(`Content-Length: ${text.length}`)}${text}`
  const chunked = (...headers: ReadonlyArray<string>) => post("Transfer-Encoding: chunked", ...headers)
  const pieces = Array.from({ length: 24 }, () => chunk("x".repeat(64 * 1024)))
  const refused: Pick<Way, "statuses"> = { statuses: [400] }

  return {
    "a call as it should be": { sent: [get()], statuses: [200] },
    "a call with a body": { sent: [whole()], statuses: [200] },
    "HTTP/1.0 without a host": { sent: [head(`GET ${BIN} HTTP/1.0`, auth)], statuses: [200] },
    "a target with a host of its own": { sent: [head(`GET http://evil.example${BIN} HTTP/1.1`, HOST, auth)], statuses: [200] },

    // chunked bodies
    "a chunked body": { sent: [chunked(), chunk(TEXT.slice(0, 5)), chunk(TEXT.slice(5)), LAST], statuses: [200] },
    "a chunk with an extension": { sent: [`${chunked()}d;name=value\r\n${TEXT}\r\n${LAST}`], statuses: [200] },
    trailers: { sent: [`${chunked("Trailer: X-Sum")}${chunk(TEXT)}0\r\nX-Sum: 1\r\n\r\n`], statuses: [200] },
    "a chunked body of nothing": { sent: [chunked() + LAST], statuses: [422] },
    "a chunked body that is too large": { sent: [chunked() + chunk(LONG) + LAST], statuses: [413] },
    "a chunked body that is too large, in pieces": { sent: [chunked(), ...pieces, LAST], statuses: [413] },
    "a chunked body that is too large and never ends": { sent: [chunked(), ...pieces], statuses: [413] },
    "a chunked body that is too large, a chunk never finished": { sent: [`${chunked()}ffffff\r\n${LONG}`], statuses: [413] },
    "a chunked body that is too large, then a call": { sent: [chunked() + chunk(LONG) + LAST + get()], statuses: [413], mayGoOn: true },
    "a chunked body that is too large, from nobody": {
      sent: [head(`POST ${GRAMMAR} HTTP/1.1`, HOST, "Transfer-Encoding: chunked") + chunk(LONG) + LAST],
      statuses: [401]
    },
    "a chunked body that is too large, and gone at once": { sent: [chunked() + chunk(LONG) + LAST], ending: "reset" },
    "a chunk size that is no number": { sent: [`${chunked()}size\r\n`], ...refused },
    "a chunk size without end": { sent: [`${chunked()}ffffffffffffffffffff\r\n`], ...refused },
    "a chunk size below zero": { sent: [`${chunked()}-1\r\n`], ...refused },
    "a chunk longer than it says": { sent: [`${chunked()}2\r\n${TEXT}\r\n${LAST}`], ...refused },

    // lengths
    "a body that is too large by its length, never sent": { sent: [post("Content-Length: 1500000")], statuses: [413] },
    "a body that is too large by its length, sent": { sent: [post(`Content-Length: ${LONG.length}`), LONG], statuses: [413] },
    "a body longer than its length": { sent: [`${post("Content-Length: 5")}${TEXT}\r\n\r\n`], statuses: [422, 400] },
    "a body shorter than its length, and the end": { sent: [`${post("Content-Length: 50")}${TEXT}`], ending: "end" },
    "a length that is no number": { sent: [post("Content-Length: ten") + TEXT], ...refused },
    "a length below zero": { sent: [post("Content-Length: -1") + TEXT], ...refused },
    "a length without end": { sent: [post(`Content-Length: ${"9".repeat(30)}`) + TEXT], ...refused },
    "two lengths": { sent: [post("Content-Length: 13", "Content-Length: 12") + TEXT], ...refused },
    "a list of lengths": { sent: [post("Content-Length: 13, 13") + TEXT], ...refused },

    // two readings of one message
    "a length and chunks": { sent: [chunked("Content-Length: 4") + LAST], ...refused },
    "chunks that are not the last coding": { sent: [post("Transfer-Encoding: chunked, identity") + LAST], ...refused },
    "a coding that nobody knows": { sent: [post("Transfer-Encoding: xchunked") + LAST], ...refused },
    "a space before a colon": { sent: [post("Transfer-Encoding : chunked") + LAST], ...refused },
    "a folded header": { sent: [get("X-A: b\r\n c")], ...refused },
    "a carriage return within a header": { sent: [get("X-A: b\rX-B: c")], ...refused },
    "a NUL within a header": { sent: [get("X-A: b\0c")], ...refused },
    "a header without a name": { sent: [get(": x")], ...refused },
    "a request within a body": { sent: [whole(get()) + get()], statuses: [422, 200] },

    // several requests at once
    "three calls at once": { sent: [get() + whole() + get()], statuses: [200, 200, 200] },
    "a call and garbage": { sent: [`${get()}garbage\r\n\r\n`], statuses: [200, 400] },
    "a call with a body and garbage": { sent: [`${whole()}\0\0\0\0`], statuses: [200, 400] },
    "two calls and garbage without end": { sent: [get() + whole() + noise(100_000)], statuses: [200, 200, 400] },
    "a call and a broken body": { sent: [`${get() + chunked()}size\r\n`], statuses: [200, 400] },
    "a call and too many headers": { sent: [get() + get(`X: ${"a".repeat(20_000)}`)], statuses: [200, 431] },
    "a call and one that names no host": { sent: [get() + head(`GET ${BIN} HTTP/1.1`, auth) + get()], statuses: [200, 400] },
    "a call that is the last, and another": { sent: [get("Connection: close") + get()], statuses: [200] },
    "a call and a tunnel": { sent: [get() + head("CONNECT evil.example:443 HTTP/1.1", HOST)], statuses: [200, 400] },

    // expectations
    "a body that is waited for": { sent: [post(`Content-Length: ${TEXT.length}`, "Expect: 100-continue"), TEXT], statuses: [100, 200] },
    "a body that is waited for and never comes": { sent: [post("Content-Length: 13", "Expect: 100-continue")], ending: "reset" },
    "an expectation that nobody knows": { sent: [get("Expect: a-miracle")], statuses: [200] },

    // connections that break
    "gone before a byte": { sent: [], ending: "reset" },
    "gone within the first line": { sent: ["GET /api"], ending: "reset" },
    "gone within the headers": { sent: [get().slice(0, -2)], ending: "reset" },
    "gone before the body": { sent: [post("Content-Length: 13")], ending: "reset" },
    "gone within the body": { sent: [whole().slice(0, -4)], ending: "reset" },
    "gone within a chunk": { sent: [`${chunked()}d\r\n{"te`], ending: "reset" },
    "gone before the last chunk": { sent: [chunked() + chunk(TEXT)], ending: "reset" },
    "gone before the answer": { sent: [get()], ending: "reset", unseen: BIN_PRICE },
    "gone before many answers": { sent: [whole().repeat(5)], ending: "reset", unseen: 5 * GRAMMAR_PRICE },
    "gone with garbage": { sent: [`${whole()}garbage`], ending: "reset", unseen: GRAMMAR_PRICE },
    "left before the answer": { sent: [whole()], ending: "leave", unseen: GRAMMAR_PRICE },
    "left within the body": { sent: [whole().slice(0, -4)], ending: "leave" },

    // connections that are half closed
    "the end before a byte": { sent: [], ending: "end" },
    "the end within the headers": { sent: [get().slice(0, -2)], ending: "end", ...refused },
    "the end within a chunk": { sent: [`${chunked()}d\r\n{"te`], ending: "end" },
    "the end after a call": { sent: [get()], ending: "end", unseen: BIN_PRICE },
    "the end after garbage": { sent: [`${get()}garbage\r\n\r\n`], ending: "end", unseen: BIN_PRICE },

    // slow clients
    "a byte at a time": { sent: [...whole()], statuses: [200] },
    "a chunk a byte": { sent: [chunked(), ...[...TEXT].map(chunk), LAST], statuses: [200] },

    // floods
    "one long header": { sent: [get(`X: ${"a".repeat(20_000)}`)], statuses: [431] },
    "many headers": { sent: [get(...Array.from({ length: 3_000 }, (_, i) => `x-${i}: ${i}`))], statuses: [431] },
    "headers without end": {
      sent: [get().slice(0, -2), ...Array.from({ length: 40 }, (_, i) => `x-${i}: ${"a".repeat(1_000)}\r\n`)],
      statuses: [431]
    },
    "a long path": { sent: [head(`GET /${"a".repeat(20_000)} HTTP/1.1`, HOST)], statuses: [431] },
    "a long chunk extension": { sent: [`${chunked()}d;${"a".repeat(20_000)}\r\n`], statuses: [400] },

    // methods and versions
    "a method that nobody knows": { sent: [head(`FETCH ${BIN} HTTP/1.1`, HOST, auth)], ...refused },
    "a method in small letters": { sent: [head(`get ${BIN} HTTP/1.1`, HOST, auth)], ...refused },
    "a method that is not taken": { sent: [head(`DELETE ${BIN} HTTP/1.1`, HOST, auth)], statuses: [405] },
    TRACE: { sent: [head(`TRACE ${BIN} HTTP/1.1`, HOST, auth)], statuses: [405] },
    CONNECT: { sent: [head("CONNECT evil.example:443 HTTP/1.1", HOST, auth)], ...refused },
    "OPTIONS for all": { sent: [head("OPTIONS * HTTP/1.1", HOST)], statuses: [404] },
    "HTTP/2": { sent: ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], ...refused },
    "HTTP/9.9": { sent: [head(`GET ${BIN} HTTP/9.9`, HOST, auth)], ...refused },
    "no version": { sent: [`GET ${BIN}\r\n\r\n`], ...refused },
    "a protocol that is not HTTP": { sent: [head(`GET ${BIN} FTP/1.1`, HOST)], ...refused },

    // hosts and targets
    "no host": { sent: [head(`GET ${BIN} HTTP/1.1`, auth)], ...refused },
    "two hosts": { sent: [get("Host: evil.example")], ...refused },
    "a backslash in the path": { sent: [head("GET /api/v1\\bin/45717360 HTTP/1.1", HOST, auth)], statuses: [404] },
    "a NUL in the path": { sent: [head("GET /api/v1/bin/4571\x007360 HTTP/1.1", HOST, auth)], ...refused },
    "a target without a slash": { sent: [head("GET api/v1/bin/45717360 HTTP/1.1", HOST, auth)], ...refused },
    "a target that cannot be": { sent: [head("GET http://a:99999/ HTTP/1.1", HOST)], statuses: [404] },
    "an absolute target": { sent: [head("GET http://a:99/health HTTP/1.1", HOST)], statuses: [200] },

    // other protocols
    "a TLS handshake": { sent: ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03hello"], ...refused },
    zeros: { sent: ["\0".repeat(1_000)], ...refused },
    noise: { sent: [noise(50_000)], ...refused },
    "empty lines": { sent: ["\r\n\r\n\r\n"], ending: "end" },
    "an upgrade to a web socket": { sent: [get("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x")], statuses: [200] },
    "an upgrade to HTTP/2": { sent: [get("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: x")], statuses: [200] }
  }
}
