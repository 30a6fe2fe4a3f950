import { Dns } from "@millrace/core"
import { type Answer, decode, encode } from "dns-packet"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Message from "../../src/dns/Message.ts"

const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/u)
const name = fc
  .array(label, { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join("."))
  .filter((name) => Dns.domainName(name) === name)
const types = Dns.RecordType.literals.filter((type) => type !== "ANY")
const question = fc.record<Message.Question>({ id: fc.nat(0xffff), name, type: fc.constantFrom(...types) })

const check = <T>(property: fc.IProperty<T>, numRuns = 200) => fc.assert(property, { seed: 1, numRuns })

const replyTo = ({ id, name, type }: Message.Question, packet: Parameters<typeof encode>[0] = {}): Buffer =>
  encode({ type: "response", id, questions: [{ name, type, class: "IN" }], ...packet })

const QUESTION: Message.Question = { id: 7, name: "example.test", type: "A" }

describe("a query", () => {
  test("asks recursively for the name, in datagrams that are not fragmented", () =>
    check(
      fc.property(question, (question) => {
        const packet = decode(Message.query(question))
        expect(packet).toMatchObject({
          id: question.id,
          flag_qr: false,
          flag_rd: true,
          additionals: [{ type: "OPT", udpPayloadSize: 1232 }]
        })
        expect(packet.questions).toEqual([{ name: question.name, type: question.type, class: "IN" }])
      })
    ))

  test("is no reply to itself", () =>
    check(
      fc.property(question, (question) => {
        expect(Message.read(Message.query(question), question)).toBeUndefined()
      })
    ))
})

describe("a reply", () => {
  test("is read in any case of its question", () =>
    check(
      fc.property(question, fc.boolean(), fc.nat(5), (question, upper, rcode) => {
        const bytes = replyTo(upper ? { ...question, name: question.name.toUpperCase() } : question, { flags: rcode })
        expect(Message.read(bytes, question)).toEqual({ rcode, truncated: false, bytes: bytes.length, answers: [], authorities: [] })
      })
    ))

  test("to another question is ignored", () =>
    check(
      fc.property(question, question, (asked, other) => {
        fc.pre(asked.id !== other.id || asked.name !== other.name || asked.type !== other.type)
        expect(Message.read(replyTo(other), asked)).toBeUndefined()
      })
    ))

  test.each<[string, Parameters<typeof encode>[0]]>([
    ["another class", { questions: [{ name: QUESTION.name, type: "A", class: "CH" }] }],
    ["no question", { questions: [] }],
    ["two questions", { questions: [1, 2].map(() => ({ name: QUESTION.name, type: "A" })) }],
    ["another kind of operation", { flags: 2 << 11 }]
  ])("of %s is ignored", (_, packet) => {
    expect(Message.read(replyTo(QUESTION, packet), QUESTION)).toBeUndefined()
  })

  test("has a code of more than four bits with EDNS", () => {
    const opt = {
      type: "OPT",
      name: ".",
      udpPayloadSize: 1232,
      extendedRcode: 1,
      ednsVersion: 0,
      flags: 0,
      flag_do: false,
      options: []
    } as const
    const bytes = replyTo(QUESTION, { additionals: [{ ...opt, options: [] }] })
    expect(Message.read(bytes, QUESTION)?.rcode).toBe(16)
  })

  test("with too many records is ignored", () => {
    const answers = (count: number): Array<Answer> => Array.from({ length: count }, () => ({ type: "A", name: "a", data: "192.0.2.1" }))
    expect(Message.read(replyTo(QUESTION, { answers: answers(1024) }), QUESTION)?.answers).toHaveLength(1024)
    expect(Message.read(replyTo(QUESTION, { answers: answers(1025) }), QUESTION)).toBeUndefined()
  })

  test("that is cut off anywhere is ignored", () => {
    const whole = replyTo(QUESTION, {
      answers: [
        { type: "TXT", name: QUESTION.name, data: ["some", "text"] },
        { type: "MX", name: QUESTION.name, data: { exchange: "mail.example.test", preference: 1 } },
        { type: "A", name: QUESTION.name, data: "192.0.2.1" }
      ]
    })
    expect(Message.read(whole, QUESTION)?.answers).toHaveLength(3)
    for (let length = 0; length < whole.length; length++) expect(Message.read(whole.subarray(0, length), QUESTION)).toBeUndefined()
  })

  test("with a record that is too long for its type is ignored", () => {
    const whole = replyTo(QUESTION, { answers: [{ type: "A", name: QUESTION.name, data: "192.0.2.1" }] })
    whole.writeUInt16BE(5, whole.length - 6)
    expect(Message.read(Buffer.concat([whole, Buffer.of(1)]), QUESTION)).toBeUndefined()
  })

  test("of any bytes is read or ignored, without a defect", () => {
    const { id } = QUESTION
    const header = Buffer.from([id >> 8, id & 0xff, 0x80, 0, 0, 1])
    const asked = replyTo(QUESTION).subarray(12)
    check(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: 6, maxLength: 6 }), (bytes, counts) => {
        // The first is noise; the second gets past the header; the third past the question.
        for (const message of [
          Buffer.from(bytes),
          Buffer.concat([header, Buffer.from(bytes)]),
          Buffer.concat([header, Buffer.from(counts.map((count) => (count < 128 ? 0 : count & 3))), asked, Buffer.from(bytes)])
        ])
          expect(Message.read(message, QUESTION)?.bytes ?? message.length).toBe(message.length)
      }),
      2000
    )
  })
})
