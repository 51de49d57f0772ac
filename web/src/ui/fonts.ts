// The two fonts, in a stylesheet of their own: the pages that the server makes link it too.

import '@fontsource-variable/atkinson-hyperlegible-next'
import '@fontsource-variable/jetbrains-mono'
