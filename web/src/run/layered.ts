// A map with many versions: what changed lately lies in a small layer above a large one that all versions share.
// A new version copies the small layer only, so folding an event into a run of 25,000 nodes costs as much as into a small one.
// Order is the order of insertion, as in a Map.

/** The small layer is merged into a new large one when it holds more than this, and more than an eighth of the large one. */
const TOP_MIN = 256
const TOP_PART = 8

export class LayeredMap<V> implements ReadonlyMap<string, V> {
  private base: ReadonlyMap<string, V>
  private top: Map<string, V>
  /** Keys of `top` that `base` does not have. */
  private fresh: number

  private constructor(base: ReadonlyMap<string, V>, top: Map<string, V>, fresh: number) {
    this.base = base
    this.top = top
    this.fresh = fresh
  }

  /** A version of `map` of its own, to be changed until `seal`. */
  static edit<V>(map: ReadonlyMap<string, V>): LayeredMap<V> {
    return map instanceof LayeredMap
      ? new LayeredMap<V>(map.base, new Map(map.top), map.fresh)
      : new LayeredMap(new Map(map), new Map(), 0)
  }

  set(key: string, value: V): void {
    if (!this.top.has(key) && !this.base.has(key)) this.fresh++
    this.top.set(key, value)
  }

  /** No more changes. O(1), or O(size) once in a while. */
  seal(): this {
    if (this.top.size > Math.max(TOP_MIN, this.base.size / TOP_PART)) {
      const merged = new Map(this.base)
      for (const [key, value] of this.top) merged.set(key, value)
      this.base = merged
      this.top = new Map()
      this.fresh = 0
    }
    return this
  }

  get size(): number {
    return this.base.size + this.fresh
  }

  get(key: string): V | undefined {
    const value = this.top.get(key)
    return value === undefined ? this.base.get(key) : value
  }

  has(key: string): boolean {
    return this.top.has(key) || this.base.has(key)
  }

  *entries(): MapIterator<[string, V]> {
    for (const entry of this.base) {
      const now = this.top.size ? this.top.get(entry[0]) : undefined
      yield now === undefined ? entry : [entry[0], now]
    }
    if (this.fresh) for (const entry of this.top) if (!this.base.has(entry[0])) yield entry
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value
  }

  forEach(act: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this.entries()) act(value, key, this)
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries()
  }

  get [Symbol.toStringTag](): string {
    return 'LayeredMap'
  }
}
