// A value once it has stood still for a moment: what is typed, before the server is asked about it.

import { useEffect, useState } from 'react'

export function useLater<T>(value: T, afterMs = 400): T {
  const [later, setLater] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), afterMs)
    return () => clearTimeout(timer)
  }, [value, afterMs])
  return later
}
