/** A self-signed certificate for loopback (RFC 5280), of an elliptic curve, because such keys are made at once. */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto"

export interface SelfSigned {
  /** PEM. */
  readonly cert: string
  /** PEM. */
  readonly key: string
}

const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(parts)
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const sequence = (...parts: ReadonlyArray<Uint8Array>) => der(0x30, ...parts)
const oid = (...bytes: ReadonlyArray<number>) => der(0x06, Buffer.from(bytes))
const utcTime = (text: string) => der(0x17, Buffer.from(text))

const ECDSA_WITH_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
const COMMON_NAME = oid(0x55, 0x04, 0x03)
const SUBJECT_ALT_NAME = oid(0x55, 0x1d, 0x11)
const LOOPBACK = Buffer.from([127, 0, 0, 1])

/** Valid for `localhost` and `127.0.0.1`, from 2020 until 2049 or another UTCTime. */
export const make = (commonName = "localhost", until = "491231235959Z"): SelfSigned => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(commonName)))))
  const names = sequence(der(0x82, Buffer.from("localhost")), der(0x87, LOOPBACK))
  const certificate = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    name,
    sequence(utcTime("200101000000Z"), utcTime(until)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(sequence(SUBJECT_ALT_NAME, der(0x04, names))))
  )
  const signature = sign("sha256", certificate, privateKey)
  const whole = sequence(certificate, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), signature))
  const lines = whole.toString("base64").match(/.{1,64}/gu) ?? []
  return {
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}
