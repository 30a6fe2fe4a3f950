/** DNS messages: a question, and the reply to it (RFC 1035, section 4). */
import type { Dns } from "@millrace/core"
import { type Answer, type DecodedPacket, decode, encode, RECURSION_DESIRED } from "dns-packet"

export type RecordType = Exclude<Dns.RecordType, "ANY">

export interface Question {
  readonly id: number
  /** In lower case, without a trailing dot. */
  readonly name: string
  readonly type: RecordType
}

export interface Reply {
  /** RFC 1035 and, above 15, RFC 6891. */
  readonly rcode: number
  readonly truncated: boolean
  readonly bytes: number
  readonly answers: ReadonlyArray<Answer>
  readonly authorities: ReadonlyArray<Answer>
}

export const NOERROR = 0
export const NXDOMAIN = 3

/** The largest datagram that no path fragments, as agreed on the DNS flag day of 2020, in bytes. */
const DATAGRAM_BYTES = 1232

/** The most records of a reply. A hostile reply with compressed names could take long to decode; real replies have fewer records. */
const MAX_RECORDS = 1024

export const query = ({ id, name, type }: Question): Buffer =>
  encode({
    type: "query",
    id,
    flags: RECURSION_DESIRED,
    questions: [{ name, type, class: "IN" }],
    additionals: [
      { name: ".", type: "OPT", udpPayloadSize: DATAGRAM_BYTES, extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] }
    ]
  })

const HEADER_BYTES = 12

/** The two highest bits of the length of a label mark a pointer. */
const POINTER = 0xc0

/** Decodes a reply. Undefined if the bytes are not a reply to this question. */
export const read = (bytes: Buffer, question: Question): Reply | undefined => {
  const packet = decoded(bytes)
  if (packet === undefined || !answers(packet, question)) return undefined
  const opt = packet.additionals?.find((record) => record.type === "OPT")
  const extended = opt?.type === "OPT" ? opt.extendedRcode : 0
  return {
    rcode: (extended << 4) | ((packet.flags ?? 0) & 0xf),
    truncated: packet.flag_tc,
    bytes: bytes.length,
    answers: packet.answers ?? [],
    authorities: packet.authorities ?? []
  }
}

const decoded = (bytes: Buffer): DecodedPacket | undefined => {
  try {
    const end = endOf(bytes)
    if (end === undefined) return undefined
    const packet = decode(bytes)
    return decode.bytes === end ? packet : undefined
  } catch {
    return undefined
  }
}

/**
 * The end of the message by its own lengths, which `dns-packet` does not check: it reads missing bytes as zeros. Throws if the end is
 * beyond the bytes; undefined if there are too many records.
 */
const endOf = (bytes: Buffer): number | undefined => {
  const records = [6, 8, 10].reduce((sum, offset) => sum + bytes.readUInt16BE(offset), 0)
  if (records > MAX_RECORDS) return undefined
  let offset = HEADER_BYTES
  for (let count = bytes.readUInt16BE(4); count > 0; count--) offset = afterName(bytes, offset) + 4
  for (let count = records; count > 0; count--) {
    const data = afterName(bytes, offset) + 10
    offset = data + bytes.readUInt16BE(data - 2)
  }
  return offset <= bytes.length ? offset : undefined
}

/** A name is a list of labels, each after its length, that ends with an empty label or with a pointer of two bytes to the rest. */
const afterName = (bytes: Buffer, start: number): number => {
  let offset = start
  for (;;) {
    const length = bytes.readUInt8(offset)
    if (length >= POINTER) return offset + 2
    offset += 1 + length
    if (length === 0) return offset
  }
}

const answers = ({ id, flag_qr, flags = 0, questions = [] }: DecodedPacket, question: Question): boolean => {
  const [asked] = questions
  return (
    flag_qr &&
    id === question.id &&
    ((flags >> 11) & 0xf) === 0 &&
    questions.length === 1 &&
    asked?.name.toLowerCase() === question.name &&
    asked.type === question.type &&
    asked.class === "IN"
  )
}
