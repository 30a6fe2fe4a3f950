/** Verification codes at simulated hosts: the wait with its price, and the public numbers. */
import { type Operation, SmsReceiver, VerificationCodes } from "@millrace/core"

export const NUMBERS = ["+15005550006", "+15005550007"] as const

/** The operation, with its first price in thousandths of a credit. */
export const OFFERS: ReadonlyArray<{ readonly operation: Operation.Any; readonly price: number }> = [
  { operation: VerificationCodes.wait, price: 5_000 }
]

export const receiver: ReturnType<typeof SmsReceiver.layer> = SmsReceiver.layer(NUMBERS)
