/** Sessions of people, where the host has them: a cookie that this page cannot read, and a CSRF token that it asks for. */
import type { Contract } from "./Contract.ts"
import { ask, currentAccess, SESSION, signIn, takeUpSession } from "./Requests.ts"

export const SESSIONS = "/api/v1/sessions"
export const SIGN_UP = "/api/v1/signup"

export const hasSessions = (contract: Contract): boolean => contract.find("GET", SESSION) !== undefined

/** Whether this browser sent a session's cookie with the request for this page. Without it, the question who is signed in is an error. */
export const mayHaveSession = (): boolean => document.documentElement.dataset["session"] !== "none"

/** Asks for a link by mail. The answer is the same for every address. */
export const askForLink = (address: string): Promise<unknown> => ask({ method: "POST", path: SESSIONS, body: { address } })

/** Opens an account, asks for a link that verifies its address, and takes up the session that this browser got at once. */
export const signUp = async (address: string): Promise<void> => {
  await ask({ method: "POST", path: SIGN_UP, body: { address } })
  await takeUpSession()
}

/** Ends the session, or forgets the key. */
export const signOut = async (): Promise<void> => {
  if (currentAccess().by === "session") await ask({ method: "DELETE", path: SESSION })
  signIn({ by: "nobody" })
}
