"""Pictures without a plotting library.

axes       an SVG in the page's light or dark colours, its axes, and the colour of each program
pictures   a curriculum as text and SVG, learning curves as SVG and as one line of text
"""
