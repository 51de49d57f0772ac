// Above the Tape: playing, the axis, and what is done with the moment that is shown.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyText } from '../../keys'
import { isEnded } from '../../run'
import { isLoading, runStore, seek, stepBy } from '../../state/live'
import { netStore } from '../../state/net'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import type { Axis } from './layout'
import { MomentActions } from './MomentActions'
import { nextSpeed, pause, playStore, togglePlay } from './play'

/** The switch by which the cursor follows the run. It shows Live only while nothing that happens is missing. */
function Follow(): ReactElement {
  const follows = useStore(runStore, (s) => s.cursor === 'live')
  const over = useStore(runStore, (s) => isEnded(s.head.status))
  const loading = useStore(runStore, isLoading)
  const isLive = useStore(netStore, (s) => s.mode === 'live') && !over && !loading
  return (
    <button
      type="button"
      className="drawer__follow"
      data-testid="tape-follow"
      data-live={isLive || undefined}
      aria-pressed={follows}
      title={keyText('live')}
      onClick={() => (pause(), seek('live'))}
    >
      {isLive ? <Icon name="running" size={12} /> : null}
      {loading ? 'Loading' : isLive ? 'Live' : 'Latest'}
    </button>
  )
}

export default function Controls({
  axis,
  onAxis,
  mode,
}: {
  axis: Axis
  onAxis: (axis: Axis) => void
  mode: 'edit' | 'run'
}): ReactElement {
  const { playing, speed } = useStore(playStore, (s) => s)
  const empty = useStore(runStore, (s) => s.head.seq === 0) ? 'No events yet' : null
  const step = (by: 1 | -1): void => {
    pause()
    stepBy(by)
  }
  return (
    <div className="drawer__controls" role="group" aria-label="Playback">
      <Button
        kind="bare"
        icon="first"
        iconOnly
        why={empty}
        keys={keyText('tapeStart')}
        onClick={() => (pause(), seek(0))}
      >
        To the first event
      </Button>
      <Button kind="bare" icon="back" iconOnly why={empty} keys={keyText('previousEvent')} onClick={() => step(-1)}>
        Previous event
      </Button>
      <Button
        kind="bare"
        icon={playing ? 'pause' : 'play'}
        iconOnly
        why={empty}
        keys={keyText('play')}
        onClick={togglePlay}
      >
        {playing ? 'Pause' : 'Play'}
      </Button>
      <Button kind="bare" icon="chevron" iconOnly why={empty} keys={keyText('nextEvent')} onClick={() => step(1)}>
        Next event
      </Button>
      <Button
        kind="bare"
        className="drawer__speed mono"
        aria-label={`Speed ${speed}x`}
        onClick={nextSpeed}
      >{`${speed}x`}</Button>
      <Follow />
      <span className="drawer__axis" role="group" aria-label="Axis of the Tape">
        {(['order', 'time'] as const).map((each) => (
          <button key={each} type="button" aria-pressed={axis === each} onClick={() => onAxis(each)}>
            {each === 'order' ? 'Order' : 'Time'}
          </button>
        ))}
      </span>
      <MomentActions mode={mode} empty={empty} />
    </div>
  )
}
