/** Proxies, verification codes and temporary mail. */
import { choice, id, inboxId, integer, messageId, type Row, row, text } from "../Row.ts"

const country = text({ maxLength: 50, sample: "DE", ofLength: null })
const region = text({ maxLength: 50, sample: "Hesse", ofLength: null })

const ofInbox = { path: { inbox: inboxId() }, price: 0.1, notShown: ["names of the answer's fields"] }
const ofMessage = { ...ofInbox, path: { inbox: inboxId(), message: messageId() } }

/** Beyond the specification: what a message consists of, as bytes. */
const bytesOfMessages: ReadonlyArray<Row> = [
  row("GET", "/temp-mail/inboxes/{inbox}/messages/{message}/attachments/{attachment}", "inbox.downloadAttachment", {
    ...ofMessage,
    path: { ...ofMessage.path, attachment: { ...id(), sample: "1", unknown: "2" } },
    answer: "bytes"
  }),
  row("GET", "/temp-mail/inboxes/{inbox}/messages/{message}/raw", "inbox.downloadMessage", { ...ofMessage, answer: "bytes" })
]

/** Before all messages. */
const SINCE = "2026-01-01T00:00:00Z"

export const connections: ReadonlyArray<Row> = [
  row("GET", "/proxy/locations", "proxy.locations", { query: { country, region }, price: 0.1 }),
  row("POST", "/proxy/sessions", "proxy.createSession", {
    body: { country, protocol: choice(["https", "http", "socks5", "socks5h"]), region, mode: choice(["rotating", "sticky"]) },
    price: 2,
    status: 201
  }),

  row("POST", "/verify/wait", "verification.wait", {
    body: {
      source: choice(["sms"], { required: true }),
      identifier: text({ required: true, minLength: 1, maxLength: 100, sample: "Example", malformed: ["", " "] }),
      phone_number: text({
        required: true,
        sample: "+15005550006",
        ofLength: null,
        // The last is a number, and not one of the host's
        malformed: ["5005550006", "+0500555000", "+1500555000600000", "+15005550007"]
      }),
      timeout: choice([15, 30, 60, 90, 120], { required: true }),
      since: text({
        sample: SINCE,
        ofLength: null,
        malformed: ["", "yesterday", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"]
      })
    },
    price: { credits: 5, per: "session" },
    // Otherwise each call would wait for a message to come
    beside: { since: SINCE },
    notShown: ["names of all fields but since and code", "bounds of the timeout"]
  }),

  row("POST", "/temp-mail/inboxes", "inbox.create", {
    body: { lifetime: integer({ minimum: 60, maximum: 86_400 }), label: text({ maxLength: 100 }) },
    price: 1,
    notShown: ["names of lifetime and label", "names of the answer's fields"]
  }),
  row("GET", "/temp-mail/inboxes/{inbox}", "inbox.read", ofInbox),
  row("GET", "/temp-mail/inboxes/{inbox}/messages", "inbox.listMessages", {
    ...ofInbox,
    query: {
      since: text({ sample: "2026-01-01T00:00:00Z", ofLength: null, malformed: ["yesterday", "2026-01-32T00:00:00Z"] }),
      page: integer({ minimum: 1, maximum: 10_000 }),
      per_page: integer({ minimum: 1, maximum: 100 })
    }
  }),
  row("GET", "/temp-mail/inboxes/{inbox}/messages/{message}", "inbox.readMessage", ofMessage),
  ...bytesOfMessages,
  row("POST", "/temp-mail/inboxes/{inbox}/rotate", "inbox.rotate", { ...ofInbox, price: 1 }),
  row("DELETE", "/temp-mail/inboxes/{inbox}", "inbox.delete", { ...ofInbox, price: 0 })
]
