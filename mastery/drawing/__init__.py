"""Draw pictures without a plotting library.

axes       SVG in the page's light or dark colours, its axes, and the colour of each program
pictures   a curriculum as text and SVG; learning curves as SVG and as one line of text
static_page   an HTML page without scripts
"""
