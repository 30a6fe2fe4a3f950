/** What brings text messages to hosts: an SMSC, and calls that Twilio has signed. */
/// <reference path="../../packages/upstreams/src/sms/smpp.d.ts" />
import type { AddressInfo } from "node:net"
import smpp, { type Pdu, type Session } from "smpp"
import twilio from "twilio"
import { undoAfterwards } from "./Leftovers.ts"
import { type Answer, type Call, call, type Server } from "./Server.ts"

/** A public number for verification codes. */
export const NUMBER = "+15005550006"
const TOKEN = "a token of the provider"
/** Where providers think that they call. */
const PUBLIC_URL = "https://api.example.com"

export const SETTINGS: ReadonlyArray<string> = ["--sms-numbers", NUMBER, "--sms-twilio-token", TOKEN, "--sms-url", PUBLIC_URL]

const HOOK = "/hooks/sms/twilio"

/** A message as Twilio signs and brings it. */
export const twilioCall = (id: string, text: string): Call => {
  const fields = { MessageSid: id, From: "+14155550100", To: NUMBER, Body: text, NumMedia: "0" }
  const signature = twilio.getExpectedTwilioSignature(TOKEN, `${PUBLIC_URL}${HOOK}`, fields)
  const headers = { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature }
  return { method: "POST", headers, body: new URLSearchParams(fields).toString() }
}

export const bring = (host: Pick<Server, "url">, message: Call): Promise<Answer> => call(`${host.url}${HOOK}`, message)

export interface Smsc {
  readonly port: number
  /** The session that each host binds, by its name. */
  readonly bound: ReadonlyMap<string, Session>
  /** Brings a text over the session of a host: the status of the answer. */
  readonly deliver: (name: string, text: string) => Promise<number>
}

/** An SMSC that lets everybody bind. */
export const startSmsc = async (): Promise<Smsc> => {
  const bound = new Map<string, Session>()
  const server = smpp.createServer((session) => {
    session.on("error", () => session.destroy())
    session.on("enquire_link", (pdu: Pdu) => session.send(pdu.response()))
    session.on("bind_transceiver", (pdu: Pdu) => {
      bound.set(pdu.system_id ?? "", session)
      session.send(pdu.response())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  undoAfterwards(() => {
    for (const session of bound.values()) session.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  const addresses = { source_addr: "Example", source_addr_ton: 5, destination_addr: NUMBER.slice(1), destination_addr_ton: 1 }
  return {
    port: (server.address() as AddressInfo).port,
    bound,
    deliver: (name, text) =>
      new Promise((resolve, reject) => {
        const session = bound.get(name)
        if (session === undefined) reject(new Error(`${name} has not bound`))
        else session.deliver_sm({ ...addresses, short_message: text }, ({ command_status }) => resolve(command_status))
      })
  }
}
