// Above the Tape: playing, the axis, and what is done with the moment that is shown.

import { lazy, Suspense, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyText } from '../../keys'
import { isEnded } from '../../run'
import { isLoading, runStore, seek, stepBy, type RunState } from '../../state/live'
import { netStore } from '../../state/net'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { Icon } from '../../ui/icons'
import { shortId } from '../../ui/words'
import { compareStore, compareWith } from './compare'
import type { Axis } from './layout'
import { momentLink } from './moment'
import { pictureStore, savePicture } from './picture'
import { nextSpeed, pause, playStore, togglePlay } from './play'
import { closeRewind, rewindStore } from './rewindStore'

const CompareMenu = lazy(() => import('./CompareMenu'))
const ForkDialog = lazy(() => import('../run/ForkDialog').then((page) => ({ default: page.ForkDialog })))

/** A block with steps, such as an agent, has begun: a moment inside it can be another one. */
function hasSteps({ head }: RunState): boolean {
  for (const node of head.nodes.values()) if (node.steps.length) return true
  return false
}

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

/** For the block that is selected, else for the one that began last. */
async function beginRewind(): Promise<void> {
  const { openRewind } = await import('./rewind')
  const { blocks } = uiStore.getState().selection
  openRewind(blocks.length === 1 ? blocks[0]! : null)
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
  const [forking, setForking] = useState(false)
  const [choosing, setChoosing] = useState<{ x: number; y: number } | null>(null)
  const compared = useStore(compareStore, (s) => s.id)
  const steps = useStore(runStore, hasSteps)
  const rewinds = useStore(rewindStore, (s) => s.open)
  const drawn = useStore(pictureStore, (s) => s.now !== null)
  const meta = useStore(runStore, (s) => s.meta)
  const doc = useStore(runStore, (s) => s.doc)
  const seq = useStore(runStore, (s) => (s.cursor === 'live' ? s.head.seq : s.cursor))
  const { playing, speed } = useStore(playStore, (s) => s)
  const empty = useStore(runStore, (s) => s.head.seq === 0) ? 'No events yet' : null
  const copy = (): Promise<void> => copyText(momentLink(), 'Copied a link to this moment')
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
      <Button kind="bare" icon="link" iconOnly why={empty} onClick={() => void copy()}>
        Copy a link to this moment
      </Button>
      <Button
        kind="bare"
        icon="download"
        iconOnly
        why={empty ?? (drawn ? null : 'Unfold the Tape first')}
        onClick={() => savePicture(`tape-${shortId(meta?.id ?? 'run')}.png`)}
      >
        Save as a picture
      </Button>
      <Button
        kind="bare"
        icon={compared ? 'close' : 'compare'}
        iconOnly
        data-testid="compare"
        why={empty ?? (meta ? null : 'Not loaded yet')}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect()
          if (compared) compareWith(null)
          else setChoosing({ x: box.left, y: box.bottom })
        }}
      >
        {compared ? 'Stop comparing' : 'Compare with another run'}
      </Button>
      {choosing ? (
        <Suspense fallback={null}>
          <CompareMenu at={choosing} onClose={() => setChoosing(null)} />
        </Suspense>
      ) : null}
      {steps && !compared ? (
        <Button
          kind="bare"
          className="drawer__rewind"
          icon="undo"
          aria-pressed={rewinds}
          data-testid="rewind"
          onClick={() => (rewinds ? closeRewind() : void beginRewind())}
        >
          Rewind
        </Button>
      ) : null}
      {mode === 'run' ? (
        <Button
          kind="bare"
          icon="router"
          iconOnly
          data-testid="fork-here"
          why={empty ?? (seq < 1 ? 'There is no event before this moment' : null)}
          onClick={() => setForking(true)}
        >
          Fork from here
        </Button>
      ) : null}
      {forking && meta ? (
        <Suspense fallback={null}>
          <ForkDialog run={meta} doc={doc} seq={seq} onClose={() => setForking(false)} />
        </Suspense>
      ) : null}
    </div>
  )
}
