/** Counts lines without reading them: what messages cost depends on lines more than on bytes. */
export const linesOf = (raw: Uint8Array): number => {
  let lines = 0
  for (let at = raw.indexOf(0x0a); at !== -1; at = raw.indexOf(0x0a, at + 1)) lines += 1
  return lines
}
