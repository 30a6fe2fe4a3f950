/** Values that live outside the components: the address, how the tool is signed in. */
import { useEffect, useState } from "preact/hooks"

/**
 * The value that `read` returns, drawn again whenever `listen` says that it changed. `read` is asked again once the component listens, because
 * the value may change between the first draw and that. Both must be the same functions at every draw, and `read` must return the identical
 * value while nothing changed.
 */
export const useExternal = <Value>(read: () => Value, listen: (changed: () => void) => () => void): Value => {
  const [value, setValue] = useState(read)
  useEffect(() => {
    const changed = () => setValue(read)
    const forget = listen(changed)
    changed()
    return forget
  }, [read, listen])
  return value
}
