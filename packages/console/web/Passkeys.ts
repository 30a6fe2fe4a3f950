/** Passkeys, where the host has sessions and the browser can ask an authenticator. */
import { browserSupportsWebAuthn, startAuthentication, startRegistration } from "@simplewebauthn/browser"
import type { Contract } from "./Contract.ts"
import { ask, Refused, takeUpSession } from "./Requests.ts"
import { SESSIONS } from "./Session.ts"

export const PASSKEYS = "/api/v1/passkeys"
const SIGN_IN = `${SESSIONS}/passkey`

export interface Passkey {
  readonly passkey_id: string
  readonly name: string | null
  readonly added_at: string
  readonly used_at: string | null
}

export const hasPasskeys = (contract: Contract): boolean => contract.find("POST", SIGN_IN) !== undefined && browserSupportsWebAuthn()

/** What browsers say of an authenticator that was not asked, or did not answer, in words of this tool. */
const WORDS: Readonly<Record<string, string>> = {
  NotAllowedError: "The passkey was not used: the question was closed, or took too long.",
  AbortError: "The passkey was not used: another question took its place.",
  InvalidStateError: "This device has a passkey of this account already.",
  SecurityError: "This browser uses no passkeys at this address."
}

/** Asks the authenticator. Throws {@link Refused} if it does not answer. */
const asked = async <Answer>(question: Promise<Answer>): Promise<Answer> => {
  try {
    return await question
  } catch (error) {
    const { cause, message, name } = error as Error
    const of = cause instanceof Error ? cause.name : name
    throw new Refused("passkey", WORDS[of] ?? message, 0)
  }
}

/** Signs in with a passkey of whichever account the person chooses. */
export const signInByPasskey = async (): Promise<void> => {
  type Options = { readonly options: Parameters<typeof startAuthentication>[0]["optionsJSON"] }
  const { options } = await ask<Options>({ method: "POST", path: `${SIGN_IN}/options` })
  const credential = await asked(startAuthentication({ optionsJSON: options }))
  await ask({ method: "POST", path: SIGN_IN, body: { credential } })
  await takeUpSession()
}

/** Adds a passkey of this device to the account. */
export const addPasskey = async (name: string): Promise<void> => {
  type Options = { readonly options: Parameters<typeof startRegistration>[0]["optionsJSON"] }
  const { options } = await ask<Options>({ method: "POST", path: `${PASSKEYS}/options` })
  const credential = await asked(startRegistration({ optionsJSON: options }))
  await ask({ method: "POST", path: PASSKEYS, body: { credential, ...(name === "" ? {} : { name }) } })
}
