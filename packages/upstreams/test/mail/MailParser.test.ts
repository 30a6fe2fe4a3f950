import { isUnreadable, type MailContent, MailReader, type Unreadable } from "@millrace/core"
import { MailParser } from "@millrace/upstreams/mail"
import { Context, Effect, Layer, type Scope } from "effect"
import fc from "fast-check"
import { createTransport, type SendMailOptions } from "nodemailer"
import { describe, expect, test } from "vitest"
import * as MailContents from "../../src/mail/MailContents.ts"

const composed = async (mail: SendMailOptions): Promise<Uint8Array> => {
  const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail(mail)
  return Buffer.isBuffer(message) ? message : Buffer.alloc(0)
}

const bytes = (...lines: ReadonlyArray<string>): Uint8Array => Buffer.from(lines.join("\r\n"), "latin1")

const content = (read: MailContent | Unreadable): MailContent => {
  if (isUnreadable(read)) throw new Error(read.reason)
  return read
}

const read = async (...lines: ReadonlyArray<string>) => content(await MailContents.read(bytes(...lines)))

const PNG = Buffer.from("89504e470d0a1a0a", "hex")

describe("what a message says", () => {
  test("a message of nodemailer with everything", async () => {
    const raw = await composed({
      from: '"Zoë, Shop" <shop@shop.test>',
      to: ["Anna <anna@mail.test>", "bert@mail.test"],
      cc: "cleo@mail.test",
      replyTo: "help@shop.test",
      subject: "Bestätigung für 東京",
      date: new Date(1_700_000_000_000),
      messageId: "<1@shop.test>",
      text: "Code: 123456\n€",
      html: '<p onclick="x()">Code: <b>123456</b><img src="https://shop.test/pixel"></p>',
      headers: { "X-Mailer": "Mailer 1", "X-Other": "hidden" },
      attachments: [
        { filename: "Rechnung für März.pdf", content: Buffer.from("%PDF"), contentType: "application/pdf" },
        { filename: "logo.png", content: PNG, cid: "logo" }
      ]
    })
    const mail = content(await MailContents.read(raw))
    expect(mail).toEqual({
      from: { name: "Zoë, Shop", address: "shop@shop.test" },
      subject: "Bestätigung für 東京",
      hasAttachments: true,
      to: [
        { name: "Anna", address: "anna@mail.test" },
        { name: null, address: "bert@mail.test" }
      ],
      cc: [{ name: null, address: "cleo@mail.test" }],
      replyTo: [{ name: null, address: "help@shop.test" }],
      date: 1_700_000_000_000,
      messageId: "<1@shop.test>",
      text: expect.stringMatching(/^Code: 123456\r?\n€\r?\n?$/u),
      html: expect.stringMatching(/^<p>Code: <b>123456<\/b><\/p>\n?$/u),
      headers: expect.objectContaining({ subject: ["Bestätigung für 東京"], "x-mailer": ["Mailer 1"], "message-id": ["<1@shop.test>"] }),
      attachments: [
        { name: "logo.png", contentType: "image/png", size: 8 },
        { name: "Rechnung für März.pdf", contentType: "application/pdf", size: 4 }
      ]
    })
    expect(mail.headers).not.toHaveProperty("x-other")
    expect(await MailContents.attachment(raw, 0)).toEqual(new Uint8Array(PNG))
    expect(await MailContents.attachment(raw, 2)).toBeUndefined()
  })

  test("nothing is null or empty", async () => {
    const nothing = {
      from: null,
      subject: null,
      hasAttachments: false,
      to: [],
      cc: [],
      replyTo: [],
      date: null,
      messageId: null,
      html: null
    }
    expect(await read("")).toEqual({ ...nothing, text: null, headers: {}, attachments: [] })
    expect(await read("Date: never", "From: nobody", "", "x")).toMatchObject({ ...nothing, from: null, text: expect.stringMatching(/^x/u) })
  })

  test.each([
    ["UTF-8", "=?UTF-8?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"],
    ["Latin-1", "=?iso-8859-1?Q?Gr=FC=DFe?=", "Grüße"],
    ["Japanese", "=?ISO-2022-JP?B?GyRCRWw1fhsoQg==?=", "東京"],
    ["8-bit UTF-8 without words", "Gr\xc3\xbc\xc3\x9fe", "Grüße"],
    ["a charset that does not exist", "=?x-nothing?Q?abc?=", "abc"],
    ["broken base64", "=?UTF-8?B?!!!?=", expect.any(String)],
    ["a line break in a word", "=?UTF-8?Q?a=0D=0ABcc:_evil@evil.test?=", "a Bcc: evil@evil.test"],
    ["a line break of Unicode in a word", "=?UTF-8?Q?a=E2=80=A8b?=", "a b"],
    ["a sign that turns the direction", "=?UTF-8?Q?gpj=E2=80=AEexe?=", "gpj exe"]
  ])("a subject in %s", async (_, subject, expected) => {
    const mail = await read(`Subject: ${subject}`, "", "x")
    expect(mail.subject).toEqual(expected)
    expect(mail.headers["subject"]).toEqual([expected])
  })

  test("a file's name has no path and no line break, and its type is one", async () => {
    const part = (name: string, type = "text/x") => [
      "--b",
      `Content-Type: ${type}`,
      `Content-Disposition: attachment; filename*=utf-8''${encodeURIComponent(name)}`,
      "",
      "x"
    ]
    const names = ["../../etc/passwd", "C:\\Windows\\a.txt", "a\r\nSet-Cookie: b", "..", "invoice\u202efdp.exe", "x".repeat(400)]
    const mail = await read(
      "Content-Type: multipart/mixed; boundary=b",
      "",
      ...names.flatMap((name) => part(name)),
      ...part("t", 'a/b"<script>'),
      "--b--"
    )
    expect(mail.attachments.map(({ name }) => name)).toEqual([
      "passwd",
      "a.txt",
      "a Set-Cookie: b",
      null,
      "invoice fdp.exe",
      "x".repeat(255),
      "t"
    ])
    expect(mail.attachments.at(-1)?.contentType).toBe("application/octet-stream")
  })

  test("a boundary that is forged within a part ends nothing but its own level", async () => {
    const mail = await read(
      "Content-Type: multipart/mixed; boundary=outer",
      "",
      "--outer",
      "Content-Type: multipart/alternative; boundary=outer2",
      "",
      "--outer2",
      "Content-Type: text/plain",
      "",
      "--outer3 is text",
      "--outer2--",
      "--outer",
      "Content-Type: text/plain",
      "Content-Disposition: attachment; filename=a.txt",
      "",
      "file",
      "--outer--",
      "after the end"
    )
    expect(mail.text?.trim()).toBe("--outer3 is text")
    expect(mail.attachments).toEqual([{ name: "a.txt", contentType: "text/plain", size: expect.any(Number) }])
  })
})

const nested = (depth: number): Uint8Array =>
  bytes(
    ...Array.from({ length: depth }, (_, i) => [`Content-Type: multipart/mixed; boundary=b${i}`, "", `--b${i}`]).flat(),
    "Content-Type: text/plain",
    "",
    "deep",
    ...Array.from({ length: depth }, (_, i) => `--b${depth - 1 - i}--`)
  )

const parts = (count: number, lines: ReadonlyArray<string>): Uint8Array =>
  bytes("Content-Type: multipart/mixed; boundary=b", "", ...Array.from({ length: count }, () => ["--b", ...lines]).flat(), "--b--")

const messages = (depth: number): Uint8Array =>
  bytes(...Array.from({ length: depth }, () => ["Content-Type: message/rfc822", ""]).flat(), "Subject: inner", "", "x")

describe("hostile messages", () => {
  const file = ["Content-Disposition: attachment", "", "x"]

  test.each([
    { name: "parts in 20 levels", raw: nested(19), reason: undefined },
    { name: "parts in more levels", raw: nested(30), reason: /nesting depth of 20/u },
    {
      name: "10,000 headers",
      raw: bytes(...Array.from({ length: 10_000 }, (_, i) => `X-Header-${i}: ${"v".repeat(20)}`), "", "x"),
      reason: /header size/iu
    },
    { name: "a header line of a megabyte", raw: bytes(`Subject: ${"x".repeat(1_000_000)}`, "", "x"), reason: /header size/iu },
    { name: "headers that add up over parts", raw: parts(600, [`X: ${"v".repeat(500)}`, "", "x"]), reason: /header size/iu },
    { name: "500 attachments", raw: parts(500, file), reason: undefined },
    { name: "more attachments", raw: parts(501, file), reason: /500 attachments/u },
    { name: "more lines than are read", raw: new Uint8Array(1_000_001).fill(0x0a), reason: /lines/u },
    { name: "more bytes than are read", raw: new Uint8Array(40 * 1024 * 1024 + 1), reason: /bytes/u },
    { name: "a longer text than is read", raw: bytes("", "x".repeat(4 * 1024 * 1024 + 1)), reason: /characters/u },
    { name: "messages in messages", raw: messages(200), reason: undefined },
    { name: "addresses without end", raw: bytes(`To: ${"a@b.test,".repeat(20_000)}`, "", "x"), reason: undefined },
    { name: "comments in comments", raw: bytes(`To: ${"(".repeat(100_000)}`, "", "x"), reason: undefined },
    { name: "encoded words without end", raw: bytes(`Subject: ${"=?utf-8?q?=41?= ".repeat(12_000)}`, "", "x"), reason: undefined },
    {
      name: "folded lines without end",
      raw: bytes("Subject: a", ...Array.from({ length: 20_000 }, () => " b"), "", "x"),
      reason: undefined
    },
    { name: "a text of many tags", raw: bytes("Content-Type: text/html", "", "<p style='color:red'>".repeat(20_000)), reason: undefined }
  ])("$name: reason $reason", async ({ raw, reason }) => {
    const mail = await MailContents.read(raw)
    expect(isUnreadable(mail) ? mail.reason : undefined).toEqual(reason === undefined ? undefined : expect.stringMatching(reason))
    if (reason !== undefined) expect(await MailContents.attachment(raw, 0)).toBeUndefined()
    else expect(content(mail).to.length).toBeLessThanOrEqual(500)
  })

  /** Lines of which messages are made, whole and broken. */
  const line = fc.oneof(
    fc.constantFrom("", "--a", "--a--", "--b", "--b--", " folded", "text", "=", "=3D=0D=0A", "QUJD", "<script>x</script>", "\0\xff\xfe"),
    fc.constantFrom(
      "Content-Type: multipart/mixed; boundary=a",
      "Content-Type: multipart/alternative; boundary=b",
      "Content-Type: text/html"
    ),
    fc.constantFrom(
      "Content-Type: message/rfc822",
      "Content-Type: text/plain; charset=utf-16; format=flowed",
      'Content-Type: a/b; name*0="x'
    ),
    fc.constantFrom(
      "Content-Transfer-Encoding: base64",
      "Content-Transfer-Encoding: quoted-printable",
      "Content-Disposition: attachment; filename==?u?"
    ),
    fc.constantFrom(
      "From: =?utf-8?q?a=0D=0Ab?= <a@b.test>",
      "To: g: a@b, =?x?b?y?= <c@d>;",
      "Subject: =?utf-8?b?DQo=?=",
      "Date: 99",
      "Received: x"
    ),
    fc.string({ unit: "binary", maxLength: 12 }).map((text) => Buffer.from(text).toString("latin1"))
  )

  const oneLine = /^[^\p{Cc}\u2028\u2029]*$/u

  test("whatever comes is read, on one line where a line is promised, and attachments are as large as said", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 40 }), async (lines) => {
        const raw = bytes(...lines)
        const mail = await MailContents.read(raw)
        if (isUnreadable(mail)) return expect(mail.reason).toMatch(oneLine)
        const boxes = [mail.from ?? [], mail.to, mail.cc, mail.replyTo].flat().flatMap(({ name, address }) => [name ?? "", address])
        const names = mail.attachments.flatMap(({ name, contentType }) => [name ?? "", contentType])
        for (const text of [mail.subject ?? "", mail.messageId ?? "", ...boxes, ...names, ...Object.values(mail.headers).flat()])
          expect(text).toMatch(oneLine)
        expect(mail.html ?? "").not.toMatch(/<script/iu)
        const sizes = await Promise.all(mail.attachments.map(async (_, place) => (await MailContents.attachment(raw, place))?.length))
        expect(sizes).toEqual(mail.attachments.map(({ size }) => size))
      }),
      { numRuns: 300, seed: 1 }
    )
  })
})

describe("in a worker", () => {
  const reader = (options: MailParser.Options = {}) =>
    Effect.map(Layer.build(MailParser.layer(options)), (context) => Context.get(context, MailReader))
  const run = <A>(effect: Effect.Effect<A, never, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(effect))
  const mail = bytes(
    "Subject: Hi",
    "Content-Type: multipart/mixed; boundary=b",
    "",
    "--b",
    "Content-Disposition: attachment",
    "",
    "file",
    "--b--"
  )

  test("it reads as here, and gives the bytes of attachments", () =>
    run(
      Effect.gen(function* () {
        const { attachment, read } = yield* reader()
        expect(yield* read(mail)).toEqual(yield* Effect.promise(() => MailContents.read(mail)))
        expect(Buffer.from((yield* attachment(mail, 0)) ?? []).toString()).toMatch(/^file/u)
        expect(yield* attachment(mail, 1)).toBeUndefined()
        expect(yield* read(nested(30))).toMatchObject({ reason: expect.stringMatching(/nesting/u) })
      })
    ))

  test("a message that takes too much memory or time is unreadable, and the next is read", () =>
    run(
      Effect.gen(function* () {
        const small = yield* reader({ memory: 32 })
        expect(yield* small.read(new Uint8Array(990_000).fill(0x0a))).toEqual({ reason: expect.stringMatching(/stopped.*memory/u) })
        expect(yield* small.read(mail)).toMatchObject({ subject: "Hi" })
        const quick = yield* reader({ timeLimit: 600 })
        yield* quick.read(mail)
        const slow = bytes("Content-Type: text/html", "", "<p style='color:red'>".repeat(199_000))
        expect(yield* quick.read(slow)).toEqual({ reason: expect.stringMatching(/stopped.*time limit/u) })
        expect(yield* quick.attachment(slow, 0)).toBeUndefined()
        expect(yield* quick.read(mail)).toMatchObject({ subject: "Hi" })
      })
    ))

  test("many at once have each their own answer", () =>
    run(
      Effect.gen(function* () {
        const { attachment, read } = yield* reader()
        const subjects = Array.from({ length: 100 }, (_, i) => `Message ${i}`)
        const messageOf = (subject: string, i: number) => bytes(`Subject: ${subject}`, "", "x".repeat(i % 10 === 0 ? 100_000 : 10))
        const [reads, files] = yield* Effect.all(
          [
            Effect.forEach(subjects, (subject, i) => read(messageOf(subject, i)), { concurrency: "unbounded" }),
            Effect.forEach(subjects, () => attachment(mail, 0), { concurrency: "unbounded" })
          ],
          { concurrency: 2 }
        )
        expect(reads.map((read) => content(read).subject)).toEqual(subjects)
        for (const file of files) expect(Buffer.from(file ?? []).toString()).toMatch(/^file/u)
      })
    ))
})
