// A value after it stopped changing for a while: typed text, before it is sent to the server.

import { useEffect, useState } from 'react'

export function useLater<T>(value: T, afterMs = 400): T {
  const [later, setLater] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), afterMs)
    return () => clearTimeout(timer)
  }, [value, afterMs])
  return later
}
