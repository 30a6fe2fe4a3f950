/** Checks every proxy session: the answer to its caller, whom nodes admitted, and what they counted, against the session in the log. */
import { ProxySession } from "@millrace/core"
import { Exit } from "effect"
import { type Evidence, isAbandoned, type Report, type Reservation } from "../Evidence.ts"
import { type Admission, type AnnouncedNode, type Call, type Counting, dataOf } from "../Records.ts"

const OPEN = "proxy.createSession"

export const checkProxies = (evidence: Evidence, report: Report): void => {
  for (const reservation of evidence.reservations.byId.values())
    if (reservation.hold.operation === OPEN) checkPaid(reservation, evidence, report)
  checkOpened(evidence, report)
  for (const call of evidence.calls) {
    if (call.intent.operation !== OPEN || call.response === undefined || Exit.isFailure(call.response.answer)) continue
    checkAnswer(call, evidence, (violation) => report(`${call.requestId}: ${violation}`))
  }
  for (const admission of evidence.records.admissions) checkAdmission(admission, evidence, report)
  for (const counting of evidence.records.countings) checkCounting(counting, evidence, report)
  checkCounted(evidence, report)
}

const termsOf = (sessionId: string, { recorder }: Evidence) => {
  const first = recorder.sessions.of(sessionId).events[0]
  return first?.event._tag === "ProxySessionOpened" ? { ...first.event, at: first.at, index: first.index } : undefined
}

/** The session that a hold or a slot of a trial is for. A late charge pays for the session of the hold that had lapsed. */
const sessionOf = (taken: { readonly reservationId: string; readonly lateOf?: string | undefined }): string =>
  ProxySession.idOf(taken.lateOf ?? taken.reservationId)

/** A session is charged once, after it was opened, to its own account; also one that only recovery finds. */
const checkPaid = (reservation: Reservation, evidence: Evidence, report: Report): void => {
  const { end, hold, stream, success } = reservation
  const terms = termsOf(sessionOf(hold), evidence)
  const what = `${stream}: the proxy session of ${hold.requestId}`
  if (terms !== undefined && end !== undefined && terms.index < end.index && isAbandoned(end))
    report(`${what} was there, but its hold was released as abandoned`)
  if (success === undefined) return
  if (terms === undefined || terms.index > (end?.index ?? 0)) report(`${what} was charged before it was opened`)
  else if (!stream.endsWith(terms.accountId)) report(`${what} is another account's`)
}

/** Each session was opened for a call, with the terms of the deployment, at a node that served, and with a password of its own. */
const checkOpened = (evidence: Evidence, report: Report): void => {
  const { calls, records, recorder, reservations, sessionTerms } = evidence
  const paid = Map.groupBy([...reservations.byId.values()], ({ hold }) => sessionOf(hold))
  const openers = new Map(
    calls.flatMap((call) =>
      call.intent.operation === OPEN ? evidence.takenBy(call.requestId).map((taken) => [sessionOf(taken), call]) : []
    )
  )
  const hashes = new Set<string>()
  for (const sessionId of recorder.sessions.byId.keys()) {
    const terms = termsOf(sessionId, evidence)
    if (terms === undefined) continue
    const tell = (violation: string) => report(`${sessionId} ${violation}`)
    if ((paid.get(sessionId) ?? []).filter(({ net, success }) => success !== undefined && net > 0).length > 1) tell("was charged twice")
    const { byteLimit, connectionLimit, lifetime } = sessionTerms
    if (terms.expiresAt !== terms.at + lifetime) tell(`lives for ${terms.expiresAt - terms.at} ms of ${lifetime}`)
    if (terms.byteLimit !== byteLimit || terms.connectionLimit !== connectionLimit) tell("has other bounds than those of its host")
    if (hashes.has(terms.passwordHash)) tell("has the password of another session")
    hashes.add(terms.passwordHash)
    const opener = openers.get(sessionId)
    const served = records.nodes.get(terms.host)
    if (served === undefined || opener === undefined) {
      tell(`is at ${terms.host}, for ${opener?.requestId}`)
      continue
    }
    checkNode(opener, terms, served, evidence, tell)
  }
}

/** For how long a node that died is listed, milliseconds. */
const LISTED = 30_000

/** The session is at a node that its caller asked for, and that had not gone before. */
const checkNode = (
  { intent, startedAt }: Call,
  terms: ProxySession.Terms,
  { node, process }: AnnouncedNode,
  { faults }: Evidence,
  tell: Report
): void => {
  const { country, mode = "rotating", protocol } = intent.input
  const { country: there, endpoints, exits, region } = node
  // A node that stops in order removes its entry
  const isRemoved = !process.crashed && faults.states + faults.slow === 0
  const listed = isRemoved ? 0 : LISTED + faults.skew
  if (process.diedAt !== undefined && process.diedAt + listed < startedAt) tell(`is at ${node.host}, which had gone before`)
  if (!endpoints.some((endpoint) => endpoint.protocol === terms.protocol && endpoint.port === terms.port))
    tell(`is for ${terms.protocol}, which ${node.host} does not speak`)
  const places = there === "DE" ? ["de", "germany"] : ["fr", "france"]
  if (country !== undefined && !places.includes(country.toLowerCase())) tell(`is in ${there}, but ${country} was asked for`)
  if (protocol !== undefined && protocol !== terms.protocol) tell(`is for ${terms.protocol}, but ${protocol} was asked for`)
  if (mode !== terms.mode || there !== terms.country || region !== terms.region) tell("has other terms than its node and its caller")
  if (mode === "sticky" ? !exits.includes(terms.ip) : terms.ip !== exits[0]) tell(`leaves from ${terms.ip}, which is not its node's`)
}

/** What a caller was told is the session in the log, with the password that it has there. */
const checkAnswer = (call: Call, evidence: Evidence, report: Report): void => {
  const { intent, response } = call
  const data = dataOf(call)
  const terms = termsOf(data.session_id, evidence)
  if (response === undefined) return
  if (terms === undefined || terms.index > response.lengthAfter) return report("was answered a proxy session that is not in the log")
  if (terms.accountId !== intent.accountId) report("was answered the proxy session of another account")
  if (ProxySession.hashOf(data.password) !== terms.passwordHash || data.username !== data.session_id)
    report(`was answered other credentials than ${data.session_id} has`)
  if (Date.parse(data.expires_at) !== terms.expiresAt) report(`was answered another expiry than ${data.session_id} has`)
  for (const name of ["host", "port", "protocol", "country", "ip"] as const)
    if (data[name] !== terms[name]) report(`was answered the ${name} ${data[name]}, but ${data.session_id} has ${terms[name]}`)
  const reply = Exit.isSuccess(response.answer) ? response.answer.value.requestId : ""
  if (!evidence.takenBy(reply).some((taken) => sessionOf(taken) === data.session_id))
    report(`was answered ${data.session_id}, which ${reply} did not open`)
}

/** A node admits exactly who has the credentials of a session that can be used, by the clock of the node's host. */
const checkAdmission = ({ answer, lengthBefore, password, process, sessionId }: Admission, evidence: Evidence, report: Report): void => {
  if (answer?.told === "died") report(`the look-up of ${sessionId} at ${process.name} died`)
  if (answer?.clock === undefined) return
  const { faults, recorder } = evidence
  const terms = termsOf(sessionId, evidence)
  const what = `a client of ${sessionId} at ${process.name}`
  const isRight = terms !== undefined && terms.passwordHash === ProxySession.hashOf(password)
  // A clock may be stepped while the node looks the session up
  const tolerance = faults.clocks > 0 ? faults.skew : 0
  const [earliest, latest] = [Math.min(...answer.clock) - tolerance, Math.max(...answer.clock) + tolerance]
  const states = recorder.sessions.between(sessionId, lengthBefore, answer.lengthAfter)
  const isOpen = (state: ProxySession.ProxySession): boolean =>
    state.status === "open" && bytesOf(state.traffic) < state.byteLimit && earliest < state.expiresAt
  if (answer.told === "refused") {
    if (isRight && states.every(({ status }) => status === "open") && latest < terms.expiresAt)
      report(`${what} was refused, but may use it`)
    return
  }
  if (!isRight) return report(`${what} was admitted without its credentials`)
  if (earliest >= terms.expiresAt) report(`${what} was admitted ${earliest - terms.expiresAt} ms after its expiry`)
  else if (!states.some(isOpen)) report(`${what} was admitted after its end`)
}

const bytesOf = (traffic: ProxySession.Opened["traffic"]): number =>
  Object.values(traffic).reduce((sum, { received, sent }) => sum + received + sent, 0)

const isAtLeast = (one: ProxySession.Traffic, other: ProxySession.Traffic): boolean =>
  one.sent >= other.sent && one.received >= other.received && one.connections >= other.connections

/** A count that was answered is in the log by then, unless it came after the grace, and what the node was told of the session was so. */
const checkCounting = ({ answer, lengthBefore, node, sessionId, traffic }: Counting, evidence: Evidence, report: Report): void => {
  if (answer?.told === "died") report(`a count of ${node} for ${sessionId} died`)
  if (answer === undefined || !["open", "ended", "expired", "absent"].includes(answer.told)) return
  const { events } = evidence.recorder.sessions.of(sessionId)
  const isIn = ({ event, index }: (typeof events)[number]) =>
    index <= answer.lengthAfter && event._tag === "ProxyTrafficCounted" && event.node === node && isAtLeast(event, traffic)
  const isNothing = traffic.sent + traffic.received + traffic.connections === 0
  const states = evidence.recorder.sessions.between(sessionId, lengthBefore, answer.lengthAfter)
  const latest = answer.at + evidence.faults.skew
  const isTooLate = states.some((state) => state.status !== "absent" && ProxySession.countedUntil(state) < latest)
  if (!isNothing && !isTooLate && !events.some(isIn)) report(`${node} counted for ${sessionId}, but that is not in the log`)
  if (!states.some(({ status }) => status === answer.told))
    report(`${node} was told that ${sessionId} is ${answer.told}, which was never so`)
}

/** What was counted had been carried by then, and a session without bytes is not open. */
const checkCounted = ({ records, recorder }: Evidence, report: Report): void => {
  for (const [sessionId, { events, states }] of recorder.sessions.byId) {
    for (const { event, index } of events) {
      if (event._tag !== "ProxyTrafficCounted") continue
      const carried = records.carried.get(`${sessionId} ${event.node}`)?.findLast(({ length }) => length < index)?.traffic
      if (carried === undefined || !isAtLeast(carried, event)) report(`${event.node} counted more for ${sessionId} than it carried`)
    }
    for (const [i, state] of states.entries()) {
      // Both events come in one append
      const isLast = events[i + 1]?.event._tag !== "ProxySessionEnded"
      if (state.status === "open" && isLast && bytesOf(state.traffic) >= state.byteLimit)
        report(`${sessionId} stays open although its bytes are used up`)
    }
  }
}
