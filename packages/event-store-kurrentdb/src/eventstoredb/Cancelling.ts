/** Cancels a call when a signal is aborted. */
export const cancelledWith = (signal: AbortSignal, call: { readonly cancel: () => void }): void => {
  if (signal.aborted) call.cancel()
  else signal.addEventListener("abort", () => call.cancel(), { once: true })
}
