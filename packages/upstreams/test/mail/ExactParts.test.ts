/** The bytes of attachments, as real and hand-made messages have them. */
import fc from "fast-check"
import { createTransport } from "nodemailer"
import { describe, expect, test } from "vitest"
import * as MailContents from "../../src/mail/MailContents.ts"

const attached = async (raw: Uint8Array, place = 0): Promise<string | undefined> => {
  const bytes = await MailContents.attachment(raw, place)
  return bytes === undefined ? undefined : Buffer.from(bytes).toString("latin1")
}

/** A message of these lines. */
const written = (...lines: ReadonlyArray<string>): Uint8Array => Buffer.from(`${lines.join("\r\n")}\r\n`, "latin1")

const TYPE = 'Content-Type: multipart/mixed; boundary="b"'
const FILE = ["Content-Type: text/csv", "Content-Disposition: attachment; filename=a.csv"]

describe("the bytes of an attachment", () => {
  const line = fc.string({ unit: fc.constantFrom("a", "=", "-", " ", ",", "=3D", "--b", "é"), maxLength: 6 })
  const text = fc.array(line, { maxLength: 5 }).map((lines) => lines.join("\n"))
  const ascii = text.map((text) => text.replaceAll("é", "e"))

  test("are those that nodemailer was given, in each encoding", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("7bit", "quoted-printable", "base64"), ascii), { minLength: 1, maxLength: 3 }),
        async (files) => {
          const transport = createTransport({ streamTransport: true, buffer: true, newline: "windows" })
          const { message } = await transport.sendMail({
            from: "shop@example.test",
            text: "Hello",
            attachments: files.map(([contentTransferEncoding, content], i) => ({
              ...{ filename: `${i}.csv`, contentType: "text/csv", contentTransferEncoding: contentTransferEncoding as "base64", content }
            }))
          })
          if (!Buffer.isBuffer(message)) throw new Error("The message is buffered")
          for (const [i, [, content]] of files.entries()) expect(await attached(message, i)).toBe(content)
        }
      ),
      { numRuns: 100, seed: 3 }
    ))

  test("have every line break but that before the boundary, which is none of them", () =>
    fc.assert(
      fc.asyncProperty(fc.constantFrom("7bit", "8bit", "binary"), text, async (encoding, text) => {
        // A boundary within would be one
        const content = text.replaceAll("--b", "-b")
        const lines = [TYPE, "", "--b", ...FILE, `Content-Transfer-Encoding: ${encoding}`, "", ...content.split("\n"), "--b--"]
        expect(await attached(written(...lines))).toBe(content)
      }),
      { numRuns: 100, seed: 4 }
    ))

  test.each([
    ["ends in a soft break", ["a,b="], "a,b"],
    ["ends in an encoded line break and a soft one", ["a,b=0A="], "a,b\n"],
    ["ends in an encoded line break", ["a,b=0D=0A"], "a,b\r\n"],
    ["ends in an empty line", ["a,b", ""], "a,b\n"],
    ["is empty", [""], ""]
  ])("of quoted-printable that %s", async (_, body, content) => {
    const lines = [TYPE, "", "--b", ...FILE, "Content-Transfer-Encoding: quoted-printable", "", ...body, "--b--"]
    expect(await attached(written(...lines))).toBe(content)
  })

  test("are exact within a message within a message, too, and of a part whose boundary never comes", async () => {
    const inner = [TYPE.replace('"b"', '"c"'), "", "--c", ...FILE, "", "a,b", "--c--"]
    expect(await attached(written(TYPE, "", "--b", "Content-Type: message/rfc822", "", ...inner, "--b--"))).toBe("a,b")
    expect(await attached(written(TYPE, "", "--b", ...FILE, "", "a,b"))).toBe("a,b")
  })

  test("of a message that is one file end as the message does", async () => {
    expect(await attached(written(...FILE, "", "a,b"))).toBe("a,b\n")
  })
})
